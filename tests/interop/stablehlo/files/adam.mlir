module @jit_adam attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6xf64>, %arg1: tensor<f64>) -> (tensor<6xf64> {jax.result_info = "result[0]"}, tensor<6xf64> {jax.result_info = "result[1]"}, tensor<6xf64> {jax.result_info = "result[2]"}) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_0 = stablehlo.constant dense<20> : tensor<i64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<6xf64>
    %1 = stablehlo.multiply %arg0, %0 : tensor<6xf64>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<6xf64>
    %3 = stablehlo.multiply %arg0, %2 : tensor<6xf64>
    %4 = stablehlo.iota dim = 0 : tensor<20xi64>
    %5:6 = stablehlo.while(%iterArg = %4, %iterArg_2 = %arg1, %iterArg_3 = %c_1, %iterArg_4 = %arg0, %iterArg_5 = %1, %iterArg_6 = %3) : tensor<20xi64>, tensor<f64>, tensor<i64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>
    cond {
      %6 = stablehlo.compare LT, %iterArg_3, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %6 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_3) : (tensor<20xi64>, tensor<i64>) -> tensor<i64>
      %7:3 = func.call @closed_call(%iterArg_2, %iterArg_4, %iterArg_5, %iterArg_6, %6) : (tensor<f64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>, tensor<i64>) -> (tensor<6xf64>, tensor<6xf64>, tensor<6xf64>)
      %8 = stablehlo.add %iterArg_3, %c : tensor<i64>
      stablehlo.return %iterArg, %iterArg_2, %8, %7#0, %7#1, %7#2 : tensor<20xi64>, tensor<f64>, tensor<i64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>
    }
    return %5#3, %5#4, %5#5 : tensor<6xf64>, tensor<6xf64>, tensor<6xf64>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<20xi64>, %arg1: tensor<i64>) -> tensor<i64> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] : (tensor<20xi64>, tensor<i64>) -> tensor<1xi64>
    %1 = stablehlo.reshape %0 : (tensor<1xi64>) -> tensor<i64>
    return %1 : tensor<i64>
  }
  func.func private @closed_call(%arg0: tensor<f64>, %arg1: tensor<6xf64>, %arg2: tensor<6xf64>, %arg3: tensor<6xf64>, %arg4: tensor<i64>) -> (tensor<6xf64>, tensor<6xf64>, tensor<6xf64>) {
    %cst = stablehlo.constant dense<1.000000e-08> : tensor<f64>
    %c = stablehlo.constant dense<1> : tensor<i64>
    %cst_0 = stablehlo.constant dense<1.000000e-03> : tensor<f64>
    %cst_1 = stablehlo.constant dense<0.99899999999999999> : tensor<f64>
    %cst_2 = stablehlo.constant dense<1.000000e-01> : tensor<f64>
    %cst_3 = stablehlo.constant dense<9.000000e-01> : tensor<f64>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %cst_6 = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %0 = stablehlo.slice %arg1 [1:6] : (tensor<6xf64>) -> tensor<5xf64>
    %1 = stablehlo.slice %arg1 [0:5] : (tensor<6xf64>) -> tensor<5xf64>
    %2 = stablehlo.multiply %1, %1 : tensor<5xf64>
    %3 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %4 = stablehlo.multiply %3, %1 : tensor<5xf64>
    %5 = stablehlo.subtract %0, %2 : tensor<5xf64>
    %6 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %7 = stablehlo.multiply %6, %5 : tensor<5xf64>
    %8 = stablehlo.slice %arg1 [0:5] : (tensor<6xf64>) -> tensor<5xf64>
    %9 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %10 = stablehlo.subtract %9, %8 : tensor<5xf64>
    %11 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %12 = stablehlo.multiply %11, %10 : tensor<5xf64>
    %13 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %14 = stablehlo.multiply %13, %12 : tensor<5xf64>
    %15 = stablehlo.negate %14 : tensor<5xf64>
    %16 = stablehlo.pad %15, %cst_4, low = [0], high = [1], interior = [0] : (tensor<5xf64>, tensor<f64>) -> tensor<6xf64>
    %17 = stablehlo.multiply %13, %7 : tensor<5xf64>
    %18 = stablehlo.negate %17 : tensor<5xf64>
    %19 = stablehlo.multiply %18, %4 : tensor<5xf64>
    %20 = stablehlo.pad %19, %cst_4, low = [0], high = [1], interior = [0] : (tensor<5xf64>, tensor<f64>) -> tensor<6xf64>
    %21 = stablehlo.add %16, %20 : tensor<6xf64>
    %22 = stablehlo.pad %17, %cst_4, low = [1], high = [0], interior = [0] : (tensor<5xf64>, tensor<f64>) -> tensor<6xf64>
    %23 = stablehlo.add %21, %22 : tensor<6xf64>
    %24 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f64>) -> tensor<6xf64>
    %25 = stablehlo.multiply %24, %arg2 : tensor<6xf64>
    %26 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<6xf64>
    %27 = stablehlo.multiply %26, %23 : tensor<6xf64>
    %28 = stablehlo.add %25, %27 : tensor<6xf64>
    %29 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<6xf64>
    %30 = stablehlo.multiply %29, %arg3 : tensor<6xf64>
    %31 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<6xf64>
    %32 = stablehlo.multiply %31, %23 : tensor<6xf64>
    %33 = stablehlo.multiply %32, %23 : tensor<6xf64>
    %34 = stablehlo.add %30, %33 : tensor<6xf64>
    %35 = stablehlo.add %arg4, %c : tensor<i64>
    %36 = stablehlo.convert %35 : (tensor<i64>) -> tensor<f64>
    %37 = stablehlo.power %cst_3, %36 : tensor<f64>
    %38 = stablehlo.subtract %cst_5, %37 : tensor<f64>
    %39 = stablehlo.broadcast_in_dim %38, dims = [] : (tensor<f64>) -> tensor<6xf64>
    %40 = stablehlo.divide %28, %39 : tensor<6xf64>
    %41 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f64>) -> tensor<6xf64>
    %42 = stablehlo.multiply %41, %40 : tensor<6xf64>
    %43 = stablehlo.add %arg4, %c : tensor<i64>
    %44 = stablehlo.convert %43 : (tensor<i64>) -> tensor<f64>
    %45 = stablehlo.power %cst_1, %44 : tensor<f64>
    %46 = stablehlo.subtract %cst_5, %45 : tensor<f64>
    %47 = stablehlo.broadcast_in_dim %46, dims = [] : (tensor<f64>) -> tensor<6xf64>
    %48 = stablehlo.divide %34, %47 : tensor<6xf64>
    %49 = stablehlo.sqrt %48 : tensor<6xf64>
    %50 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<6xf64>
    %51 = stablehlo.add %49, %50 : tensor<6xf64>
    %52 = stablehlo.divide %42, %51 : tensor<6xf64>
    %53 = stablehlo.subtract %arg1, %52 : tensor<6xf64>
    return %53, %28, %34 : tensor<6xf64>, tensor<6xf64>, tensor<6xf64>
  }
}
