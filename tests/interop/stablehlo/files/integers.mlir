module @jit_integers attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xi32>, %arg1: tensor<4x6xi32>) -> (tensor<4x6xi32> {jax.result_info = "result[0]"}, tensor<4x6xi32> {jax.result_info = "result[1]"}, tensor<4x6xi32> {jax.result_info = "result[2]"}, tensor<4x6xi32> {jax.result_info = "result[3]"}, tensor<4x6xi32> {jax.result_info = "result[4]"}, tensor<4x6xi32> {jax.result_info = "result[5]"}, tensor<4x6xi32> {jax.result_info = "result[6]"}, tensor<4x6xi32> {jax.result_info = "result[7]"}, tensor<4x6xi32> {jax.result_info = "result[8]"}, tensor<4x6xi32> {jax.result_info = "result[9]"}, tensor<4x6xi32> {jax.result_info = "result[10]"}, tensor<4x6xi32> {jax.result_info = "result[11]"}, tensor<4x6xi32> {jax.result_info = "result[12]"}, tensor<4x6xi32> {jax.result_info = "result[13]"}, tensor<4x6xi32> {jax.result_info = "result[14]"}, tensor<4x6xi32> {jax.result_info = "result[15]"}, tensor<4x6xi32> {jax.result_info = "result[16]"}, tensor<4x6xi32> {jax.result_info = "result[17]"}, tensor<4x6xi32> {jax.result_info = "result[18]"}, tensor<4x6xui8> {jax.result_info = "result[19]"}, tensor<4x6xf32> {jax.result_info = "result[20]"}, tensor<4x6xui8> {jax.result_info = "result[21]"}, tensor<4x6xi32> {jax.result_info = "result[22]"}) {
    %c = stablehlo.constant dense<3> : tensor<i32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %c_1 = stablehlo.constant dense<2> : tensor<i32>
    %c_2 = stablehlo.constant dense<1> : tensor<i64>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %1 = stablehlo.compare EQ, %arg1, %0, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
    %2 = call @_where(%1, %c_2, %arg1) : (tensor<4x6xi1>, tensor<i64>, tensor<4x6xi32>) -> tensor<4x6xi32>
    %3 = stablehlo.add %arg0, %arg1 : tensor<4x6xi32>
    %4 = stablehlo.subtract %arg0, %arg1 : tensor<4x6xi32>
    %5 = stablehlo.multiply %arg0, %arg1 : tensor<4x6xi32>
    %6 = call @floor_divide(%arg0, %2) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
    %7 = call @remainder(%arg0, %2) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
    %8 = stablehlo.divide %arg0, %2 : tensor<4x6xi32>
    %9 = stablehlo.remainder %arg0, %2 : tensor<4x6xi32>
    %10 = stablehlo.and %arg0, %arg1 : tensor<4x6xi32>
    %11 = stablehlo.or %arg0, %arg1 : tensor<4x6xi32>
    %12 = stablehlo.xor %arg0, %arg1 : tensor<4x6xi32>
    %13 = stablehlo.not %arg0 : tensor<4x6xi32>
    %14 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %15 = stablehlo.shift_left %arg0, %14 : tensor<4x6xi32>
    %16 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %17 = stablehlo.shift_right_arithmetic %arg0, %16 : tensor<4x6xi32>
    %18 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %19 = stablehlo.shift_right_logical %arg0, %18 : tensor<4x6xi32>
    %20 = stablehlo.popcnt %arg0 : tensor<4x6xi32>
    %21 = stablehlo.count_leading_zeros %arg0 : tensor<4x6xi32>
    %22 = stablehlo.abs %arg0 : tensor<4x6xi32>
    %23 = stablehlo.multiply %arg0, %arg0 : tensor<4x6xi32>
    %24 = stablehlo.sign %arg0 : tensor<4x6xi32>
    %25 = stablehlo.convert %arg0 : (tensor<4x6xi32>) -> tensor<4x6xui8>
    %26 = stablehlo.convert %arg0 : (tensor<4x6xi32>) -> tensor<4x6xf32>
    %27 = call @bitwise_count(%arg0) : (tensor<4x6xi32>) -> tensor<4x6xui8>
    %28 = call @gcd(%arg0, %2) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
    return %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %15, %17, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28 : tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xui8>, tensor<4x6xf32>, tensor<4x6xui8>, tensor<4x6xi32>
  }
  func.func private @_where(%arg0: tensor<4x6xi1>, %arg1: tensor<i64>, %arg2: tensor<4x6xi32>) -> tensor<4x6xi32> {
    %0 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %2 = stablehlo.select %arg0, %1, %arg2 : tensor<4x6xi1>, tensor<4x6xi32>
    return %2 : tensor<4x6xi32>
  }
  func.func private @floor_divide(%arg0: tensor<4x6xi32>, %arg1: tensor<4x6xi32>) -> tensor<4x6xi32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.divide %arg0, %arg1 : tensor<4x6xi32>
    %1 = stablehlo.sign %arg0 : tensor<4x6xi32>
    %2 = stablehlo.sign %arg1 : tensor<4x6xi32>
    %3 = stablehlo.compare NE, %1, %2, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
    %4 = stablehlo.remainder %arg0, %arg1 : tensor<4x6xi32>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
    %7 = stablehlo.and %3, %6 : tensor<4x6xi1>
    %8 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %9 = stablehlo.subtract %0, %8 : tensor<4x6xi32>
    %10 = call @_where_0(%7, %9, %0) : (tensor<4x6xi1>, tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
    return %10 : tensor<4x6xi32>
  }
  func.func private @_where_0(%arg0: tensor<4x6xi1>, %arg1: tensor<4x6xi32>, %arg2: tensor<4x6xi32>) -> tensor<4x6xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<4x6xi1>, tensor<4x6xi32>
    return %0 : tensor<4x6xi32>
  }
  func.func private @remainder(%arg0: tensor<4x6xi32>, %arg1: tensor<4x6xi32>) -> tensor<4x6xi32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %1 = stablehlo.compare EQ, %arg1, %0, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %3 = call @_where_0(%1, %2, %arg1) : (tensor<4x6xi1>, tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<4x6xi32>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
    %7 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
    %9 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %10 = stablehlo.compare LT, %3, %9, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<4x6xi1>, tensor<4x6xi1>) -> tensor<4x6xi1>
    %12 = stablehlo.and %11, %6 : tensor<4x6xi1>
    %13 = stablehlo.add %4, %3 : tensor<4x6xi32>
    %14 = stablehlo.select %12, %13, %4 : tensor<4x6xi1>, tensor<4x6xi32>
    return %14 : tensor<4x6xi32>
  }
  func.func private @bitwise_count(%arg0: tensor<4x6xi32>) -> tensor<4x6xui8> {
    %0 = stablehlo.abs %arg0 : tensor<4x6xi32>
    %1 = stablehlo.popcnt %0 : tensor<4x6xi32>
    %2 = stablehlo.convert %1 : (tensor<4x6xi32>) -> tensor<4x6xui8>
    return %2 : tensor<4x6xui8>
  }
  func.func private @gcd(%arg0: tensor<4x6xi32>, %arg1: tensor<4x6xi32>) -> tensor<4x6xi32> {
    %c = stablehlo.constant dense<false> : tensor<i1>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.abs %arg0 : tensor<4x6xi32>
    %1 = stablehlo.abs %arg1 : tensor<4x6xi32>
    %2:2 = stablehlo.while(%iterArg = %0, %iterArg_1 = %1) : tensor<4x6xi32>, tensor<4x6xi32>
    cond {
      %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
      %4 = stablehlo.compare NE, %iterArg_1, %3, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
      %5 = stablehlo.reduce(%4 init: %c) applies stablehlo.or across dimensions = [0, 1] : (tensor<4x6xi1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    } do {
      %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
      %4 = stablehlo.compare NE, %iterArg_1, %3, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
      %5 = func.call @_where_1(%4, %iterArg_1, %iterArg) : (tensor<4x6xi1>, tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
      %6 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
      %7 = stablehlo.compare NE, %iterArg_1, %6, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
      %8 = stablehlo.remainder %iterArg, %iterArg_1 : tensor<4x6xi32>
      %9 = func.call @_where_2(%7, %8, %c_0) : (tensor<4x6xi1>, tensor<4x6xi32>, tensor<i32>) -> tensor<4x6xi32>
      %10 = stablehlo.compare LT, %5, %9, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
      %11 = func.call @_where_1(%10, %9, %5) : (tensor<4x6xi1>, tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
      %12 = stablehlo.compare LT, %5, %9, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
      %13 = func.call @_where_1(%12, %5, %9) : (tensor<4x6xi1>, tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
      stablehlo.return %11, %13 : tensor<4x6xi32>, tensor<4x6xi32>
    }
    return %2#0 : tensor<4x6xi32>
  }
  func.func private @_where_1(%arg0: tensor<4x6xi1>, %arg1: tensor<4x6xi32>, %arg2: tensor<4x6xi32>) -> tensor<4x6xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<4x6xi1>, tensor<4x6xi32>
    return %0 : tensor<4x6xi32>
  }
  func.func private @_where_2(%arg0: tensor<4x6xi1>, %arg1: tensor<4x6xi32>, %arg2: tensor<i32>) -> tensor<4x6xi32> {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<4x6xi1>, tensor<4x6xi32>
    return %1 : tensor<4x6xi32>
  }
}
