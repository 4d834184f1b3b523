module @jit_gathers attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x4xf64>, %arg1: tensor<3x2xi64>, %arg2: tensor<5xi64>) -> (tensor<3x2x4xf64> {jax.result_info = "result[0]"}, tensor<6x5xf64> {jax.result_info = "result[1]"}, tensor<3xf64> {jax.result_info = "result[2]"}, tensor<6x5xf64> {jax.result_info = "result[3]"}, tensor<6x4xf64> {jax.result_info = "result[4]"}, tensor<3x2x4xf64> {jax.result_info = "result[5]"}, tensor<4xf64> {jax.result_info = "result[6]"}) {
    %c = stablehlo.constant dense<7> : tensor<i64>
    %c_0 = stablehlo.constant dense<4> : tensor<i64>
    %c_1 = stablehlo.constant dense<6> : tensor<i64>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %0 = call @argsort(%arg0) : (tensor<6x4xf64>) -> tensor<6x4xi64>
    %1 = call @take_along_axis(%arg0, %0) : (tensor<6x4xf64>, tensor<6x4xi64>) -> tensor<6x4xf64>
    %2 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<3x2xi64>
    %3 = stablehlo.compare LT, %arg1, %2, SIGNED : (tensor<3x2xi64>, tensor<3x2xi64>) -> tensor<3x2xi1>
    %4 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<3x2xi64>
    %5 = stablehlo.add %arg1, %4 : tensor<3x2xi64>
    %6 = stablehlo.select %3, %5, %arg1 : tensor<3x2xi1>, tensor<3x2xi64>
    %7 = stablehlo.convert %6 : (tensor<3x2xi64>) -> tensor<3x2xi32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<3x2xi32>) -> tensor<3x2x1xi32>
    %9 = "stablehlo.gather"(%arg0, %8) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>}> : (tensor<6x4xf64>, tensor<3x2x1xi32>) -> tensor<3x2x4xf64>
    %10 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<5xi64>
    %11 = stablehlo.compare LT, %arg2, %10, SIGNED : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
    %12 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<5xi64>
    %13 = stablehlo.add %arg2, %12 : tensor<5xi64>
    %14 = stablehlo.select %11, %13, %arg2 : tensor<5xi1>, tensor<5xi64>
    %15 = stablehlo.convert %14 : (tensor<5xi64>) -> tensor<5xi32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %17 = "stablehlo.gather"(%arg0, %16) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 6, 1>}> : (tensor<6x4xf64>, tensor<5x1xi32>) -> tensor<6x5xf64>
    %18 = stablehlo.slice %arg1 [0:3, 0:1] : (tensor<3x2xi64>) -> tensor<3x1xi64>
    %19 = stablehlo.reshape %18 : (tensor<3x1xi64>) -> tensor<3xi64>
    %20 = stablehlo.slice %arg2 [0:3] : (tensor<5xi64>) -> tensor<3xi64>
    %21 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %22 = stablehlo.compare LT, %19, %21, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %23 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %24 = stablehlo.add %19, %23 : tensor<3xi64>
    %25 = stablehlo.select %22, %24, %19 : tensor<3xi1>, tensor<3xi64>
    %26 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %27 = stablehlo.compare LT, %20, %26, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %28 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %29 = stablehlo.add %20, %28 : tensor<3xi64>
    %30 = stablehlo.select %27, %29, %20 : tensor<3xi1>, tensor<3xi64>
    %31 = stablehlo.convert %25 : (tensor<3xi64>) -> tensor<3xi32>
    %32 = stablehlo.convert %30 : (tensor<3xi64>) -> tensor<3xi32>
    %33 = stablehlo.broadcast_in_dim %31, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %34 = stablehlo.broadcast_in_dim %32, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %35 = stablehlo.concatenate %33, %34, dim = 1 : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x2xi32>
    %36 = "stablehlo.gather"(%arg0, %35) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<6x4xf64>, tensor<3x2xi32>) -> tensor<3xf64>
    %37 = call @_take(%arg0, %arg2) : (tensor<6x4xf64>, tensor<5xi64>) -> tensor<6x5xf64>
    %38 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<3x2xi64>
    %39 = stablehlo.subtract %arg1, %38 : tensor<3x2xi64>
    %40 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<3x2xi64>
    %41 = stablehlo.compare LT, %39, %40, SIGNED : (tensor<3x2xi64>, tensor<3x2xi64>) -> tensor<3x2xi1>
    %42 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<3x2xi64>
    %43 = stablehlo.add %39, %42 : tensor<3x2xi64>
    %44 = stablehlo.select %41, %43, %39 : tensor<3x2xi1>, tensor<3x2xi64>
    %45 = stablehlo.convert %44 : (tensor<3x2xi64>) -> tensor<3x2xi32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [0, 1] : (tensor<3x2xi32>) -> tensor<3x2x1xi32>
    %47 = "stablehlo.gather"(%arg0, %46) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>}> : (tensor<6x4xf64>, tensor<3x2x1xi32>) -> tensor<3x2x4xf64>
    %48 = stablehlo.slice %arg0 [5:6, 0:4] : (tensor<6x4xf64>) -> tensor<1x4xf64>
    %49 = stablehlo.reshape %48 : (tensor<1x4xf64>) -> tensor<4xf64>
    return %9, %17, %36, %37, %1, %47, %49 : tensor<3x2x4xf64>, tensor<6x5xf64>, tensor<3xf64>, tensor<6x5xf64>, tensor<6x4xf64>, tensor<3x2x4xf64>, tensor<4xf64>
  }
  func.func private @argsort(%arg0: tensor<6x4xf64>) -> tensor<6x4xi64> {
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.iota dim = 0 : tensor<6x4xi64>
    %1:2 = "stablehlo.sort"(%arg0, %0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>, %arg3: tensor<i64>, %arg4: tensor<i64>):
      %2 = stablehlo.compare EQ, %arg1, %cst_0, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %3 = stablehlo.select %2, %cst_0, %arg1 : tensor<i1>, tensor<f64>
      %4 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %5 = stablehlo.select %4, %cst, %3 : tensor<i1>, tensor<f64>
      %6 = stablehlo.compare EQ, %arg2, %cst_0, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %7 = stablehlo.select %6, %cst_0, %arg2 : tensor<i1>, tensor<f64>
      %8 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %9 = stablehlo.select %8, %cst, %7 : tensor<i1>, tensor<f64>
      %10 = stablehlo.compare LT, %5, %9, TOTALORDER : (tensor<f64>, tensor<f64>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    }) : (tensor<6x4xf64>, tensor<6x4xi64>) -> (tensor<6x4xf64>, tensor<6x4xi64>)
    return %1#1 : tensor<6x4xi64>
  }
  func.func private @take_along_axis(%arg0: tensor<6x4xf64>, %arg1: tensor<6x4xi64>) -> tensor<6x4xf64> {
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<5> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<6> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.convert %arg1 : (tensor<6x4xi64>) -> tensor<6x4xi32>
    %1 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<6x4xi32>, tensor<6x4xi32>) -> tensor<6x4xi1>
    %3 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %4 = stablehlo.add %0, %3 : tensor<6x4xi32>
    %5 = stablehlo.select %2, %4, %0 : tensor<6x4xi1>, tensor<6x4xi32>
    %6 = stablehlo.reshape %5 : (tensor<6x4xi32>) -> tensor<6x4x1xi32>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<6x4x1xi32>
    %8 = stablehlo.compare GE, %6, %7, SIGNED : (tensor<6x4x1xi32>, tensor<6x4x1xi32>) -> tensor<6x4x1xi1>
    %9 = stablehlo.broadcast_in_dim %c_0, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<6x4x1xi32>
    %11 = stablehlo.compare LE, %6, %10, SIGNED : (tensor<6x4x1xi32>, tensor<6x4x1xi32>) -> tensor<6x4x1xi1>
    %12 = stablehlo.and %8, %11 : tensor<6x4x1xi1>
    %13 = stablehlo.reduce(%12 init: %c) applies stablehlo.and across dimensions = [2] : (tensor<6x4x1xi1>, tensor<i1>) -> tensor<6x4xi1>
    %14 = "stablehlo.gather"(%arg0, %6) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], operand_batching_dims = [1], start_indices_batching_dims = [1], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<6x4xf64>, tensor<6x4x1xi32>) -> tensor<6x4xf64>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<6x4xf64>
    %16 = stablehlo.select %13, %14, %15 : tensor<6x4xi1>, tensor<6x4xf64>
    return %16 : tensor<6x4xf64>
  }
  func.func private @_take(%arg0: tensor<6x4xf64>, %arg1: tensor<5xi64>) -> tensor<6x5xf64> {
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<3> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<4> : tensor<i64>
    %c_3 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i64>) -> tensor<5xi64>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
    %2 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<5xi64>
    %3 = stablehlo.add %arg1, %2 : tensor<5xi64>
    %4 = call @_where(%1, %3, %arg1) : (tensor<5xi1>, tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<5xi64>) -> tensor<5x1xi64>
    %6 = stablehlo.convert %5 : (tensor<5x1xi64>) -> tensor<5x1xi32>
    %7 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<5x1xi32>
    %8 = stablehlo.compare GE, %6, %7, SIGNED : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x1xi1>
    %9 = stablehlo.broadcast_in_dim %c_1, dims = [1] : (tensor<1xi32>) -> tensor<1x1xi32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<5x1xi32>
    %11 = stablehlo.compare LE, %6, %10, SIGNED : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x1xi1>
    %12 = stablehlo.and %8, %11 : tensor<5x1xi1>
    %13 = stablehlo.reduce(%12 init: %c) applies stablehlo.and across dimensions = [1] : (tensor<5x1xi1>, tensor<i1>) -> tensor<5xi1>
    %14 = "stablehlo.gather"(%arg0, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 6, 1>}> : (tensor<6x4xf64>, tensor<5x1xi32>) -> tensor<6x5xf64>
    %15 = stablehlo.broadcast_in_dim %13, dims = [1] : (tensor<5xi1>) -> tensor<6x5xi1>
    %16 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<6x5xf64>
    %17 = stablehlo.select %15, %14, %16 : tensor<6x5xi1>, tensor<6x5xf64>
    return %17 : tensor<6x5xf64>
  }
  func.func private @_where(%arg0: tensor<5xi1>, %arg1: tensor<5xi64>, %arg2: tensor<5xi64>) -> tensor<5xi64> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<5xi1>, tensor<5xi64>
    return %0 : tensor<5xi64>
  }
}
