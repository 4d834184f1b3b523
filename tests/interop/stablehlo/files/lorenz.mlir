module @jit_lorenz attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xf64>, %arg1: tensor<f64>) -> (tensor<f64> {jax.result_info = "result[0]"}, tensor<3xf64> {jax.result_info = "result[1]"}, tensor<f64> {jax.result_info = "result[2]"}) {
    %c = stablehlo.constant dense<5> : tensor<i64>
    %cst = stablehlo.constant dense<2.000000e-01> : tensor<f64>
    %cst_0 = stablehlo.constant dense<9.000000e-01> : tensor<f64>
    %cst_1 = stablehlo.constant dense<1.000000e-04> : tensor<f64>
    %cst_2 = stablehlo.constant dense<1.000000e-03> : tensor<f64>
    %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %cst_4 = stablehlo.constant dense<2.6666666666666665> : tensor<f64>
    %cst_5 = stablehlo.constant dense<2.800000e+01> : tensor<f64>
    %cst_6 = stablehlo.constant dense<1.000000e+01> : tensor<f64>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0:3 = stablehlo.while(%iterArg = %cst_8, %iterArg_9 = %arg0, %iterArg_10 = %arg1) : tensor<f64>, tensor<3xf64>, tensor<f64>
    cond {
      %1 = stablehlo.compare LT, %iterArg, %cst_7, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.subtract %cst_7, %iterArg : tensor<f64>
      %2 = stablehlo.convert %1 : tensor<f64>
      %3 = stablehlo.minimum %iterArg_10, %2 : tensor<f64>
      %4 = stablehlo.slice %iterArg_9 [1:2] : (tensor<3xf64>) -> tensor<1xf64>
      %5 = stablehlo.reshape %4 : (tensor<1xf64>) -> tensor<f64>
      %6 = stablehlo.slice %iterArg_9 [0:1] : (tensor<3xf64>) -> tensor<1xf64>
      %7 = stablehlo.reshape %6 : (tensor<1xf64>) -> tensor<f64>
      %8 = stablehlo.subtract %5, %7 : tensor<f64>
      %9 = stablehlo.multiply %cst_6, %8 : tensor<f64>
      %10 = stablehlo.slice %iterArg_9 [0:1] : (tensor<3xf64>) -> tensor<1xf64>
      %11 = stablehlo.reshape %10 : (tensor<1xf64>) -> tensor<f64>
      %12 = stablehlo.slice %iterArg_9 [2:3] : (tensor<3xf64>) -> tensor<1xf64>
      %13 = stablehlo.reshape %12 : (tensor<1xf64>) -> tensor<f64>
      %14 = stablehlo.subtract %cst_5, %13 : tensor<f64>
      %15 = stablehlo.multiply %11, %14 : tensor<f64>
      %16 = stablehlo.slice %iterArg_9 [1:2] : (tensor<3xf64>) -> tensor<1xf64>
      %17 = stablehlo.reshape %16 : (tensor<1xf64>) -> tensor<f64>
      %18 = stablehlo.subtract %15, %17 : tensor<f64>
      %19 = stablehlo.slice %iterArg_9 [0:1] : (tensor<3xf64>) -> tensor<1xf64>
      %20 = stablehlo.reshape %19 : (tensor<1xf64>) -> tensor<f64>
      %21 = stablehlo.slice %iterArg_9 [1:2] : (tensor<3xf64>) -> tensor<1xf64>
      %22 = stablehlo.reshape %21 : (tensor<1xf64>) -> tensor<f64>
      %23 = stablehlo.multiply %20, %22 : tensor<f64>
      %24 = stablehlo.slice %iterArg_9 [2:3] : (tensor<3xf64>) -> tensor<1xf64>
      %25 = stablehlo.reshape %24 : (tensor<1xf64>) -> tensor<f64>
      %26 = stablehlo.multiply %cst_4, %25 : tensor<f64>
      %27 = stablehlo.subtract %23, %26 : tensor<f64>
      %28 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f64>) -> tensor<1xf64>
      %29 = stablehlo.broadcast_in_dim %18, dims = [] : (tensor<f64>) -> tensor<1xf64>
      %30 = stablehlo.broadcast_in_dim %27, dims = [] : (tensor<f64>) -> tensor<1xf64>
      %31 = stablehlo.concatenate %28, %29, %30, dim = 0 : (tensor<1xf64>, tensor<1xf64>, tensor<1xf64>) -> tensor<3xf64>
      %32 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f64>) -> tensor<3xf64>
      %33 = stablehlo.multiply %32, %31 : tensor<3xf64>
      %34 = stablehlo.add %iterArg_9, %33 : tensor<3xf64>
      %35 = stablehlo.slice %34 [1:2] : (tensor<3xf64>) -> tensor<1xf64>
      %36 = stablehlo.reshape %35 : (tensor<1xf64>) -> tensor<f64>
      %37 = stablehlo.slice %34 [0:1] : (tensor<3xf64>) -> tensor<1xf64>
      %38 = stablehlo.reshape %37 : (tensor<1xf64>) -> tensor<f64>
      %39 = stablehlo.subtract %36, %38 : tensor<f64>
      %40 = stablehlo.multiply %cst_6, %39 : tensor<f64>
      %41 = stablehlo.slice %34 [0:1] : (tensor<3xf64>) -> tensor<1xf64>
      %42 = stablehlo.reshape %41 : (tensor<1xf64>) -> tensor<f64>
      %43 = stablehlo.slice %34 [2:3] : (tensor<3xf64>) -> tensor<1xf64>
      %44 = stablehlo.reshape %43 : (tensor<1xf64>) -> tensor<f64>
      %45 = stablehlo.subtract %cst_5, %44 : tensor<f64>
      %46 = stablehlo.multiply %42, %45 : tensor<f64>
      %47 = stablehlo.slice %34 [1:2] : (tensor<3xf64>) -> tensor<1xf64>
      %48 = stablehlo.reshape %47 : (tensor<1xf64>) -> tensor<f64>
      %49 = stablehlo.subtract %46, %48 : tensor<f64>
      %50 = stablehlo.slice %34 [0:1] : (tensor<3xf64>) -> tensor<1xf64>
      %51 = stablehlo.reshape %50 : (tensor<1xf64>) -> tensor<f64>
      %52 = stablehlo.slice %34 [1:2] : (tensor<3xf64>) -> tensor<1xf64>
      %53 = stablehlo.reshape %52 : (tensor<1xf64>) -> tensor<f64>
      %54 = stablehlo.multiply %51, %53 : tensor<f64>
      %55 = stablehlo.slice %34 [2:3] : (tensor<3xf64>) -> tensor<1xf64>
      %56 = stablehlo.reshape %55 : (tensor<1xf64>) -> tensor<f64>
      %57 = stablehlo.multiply %cst_4, %56 : tensor<f64>
      %58 = stablehlo.subtract %54, %57 : tensor<f64>
      %59 = stablehlo.broadcast_in_dim %40, dims = [] : (tensor<f64>) -> tensor<1xf64>
      %60 = stablehlo.broadcast_in_dim %49, dims = [] : (tensor<f64>) -> tensor<1xf64>
      %61 = stablehlo.broadcast_in_dim %58, dims = [] : (tensor<f64>) -> tensor<1xf64>
      %62 = stablehlo.concatenate %59, %60, %61, dim = 0 : (tensor<1xf64>, tensor<1xf64>, tensor<1xf64>) -> tensor<3xf64>
      %63 = stablehlo.subtract %62, %31 : tensor<3xf64>
      %64 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f64>) -> tensor<3xf64>
      %65 = stablehlo.multiply %64, %63 : tensor<3xf64>
      %66 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f64>) -> tensor<3xf64>
      %67 = stablehlo.divide %65, %66 : tensor<3xf64>
      %68 = func.call @norm(%67) : (tensor<3xf64>) -> tensor<f64>
      %69 = func.call @norm(%iterArg_9) : (tensor<3xf64>) -> tensor<f64>
      %70 = stablehlo.multiply %cst_2, %69 : tensor<f64>
      %71 = stablehlo.add %cst_1, %70 : tensor<f64>
      %72 = stablehlo.divide %68, %71 : tensor<f64>
      %73 = stablehlo.compare LT, %72, %cst_7, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %74 = stablehlo.add %31, %62 : tensor<3xf64>
      %75 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f64>) -> tensor<3xf64>
      %76 = stablehlo.multiply %75, %74 : tensor<3xf64>
      %77 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f64>) -> tensor<3xf64>
      %78 = stablehlo.divide %76, %77 : tensor<3xf64>
      %79 = stablehlo.add %iterArg_9, %78 : tensor<3xf64>
      %80 = func.call @_where(%73, %79, %iterArg_9) : (tensor<i1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %81 = stablehlo.convert %iterArg : tensor<f64>
      %82 = stablehlo.add %81, %3 : tensor<f64>
      %83 = func.call @_where_0(%73, %82, %iterArg) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %84 = stablehlo.sqrt %72 : tensor<f64>
      %85 = stablehlo.divide %cst_0, %84 : tensor<f64>
      %86 = func.call @clip(%85, %cst, %c) : (tensor<f64>, tensor<f64>, tensor<i64>) -> tensor<f64>
      %87 = stablehlo.multiply %3, %86 : tensor<f64>
      stablehlo.return %83, %80, %87 : tensor<f64>, tensor<3xf64>, tensor<f64>
    }
    return %0#0, %0#1, %0#2 : tensor<f64>, tensor<3xf64>, tensor<f64>
  }
  func.func private @norm(%arg0: tensor<3xf64>) -> tensor<f64> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<3xf64>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<3xf64>, tensor<f64>) -> tensor<f64>
    %2 = stablehlo.sqrt %1 : tensor<f64>
    return %2 : tensor<f64>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<3xf64>, %arg2: tensor<3xf64>) -> tensor<3xf64> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<3xf64>
    return %0 : tensor<3xf64>
  }
  func.func private @_where_0(%arg0: tensor<i1>, %arg1: tensor<f64>, %arg2: tensor<f64>) -> tensor<f64> {
    %0 = stablehlo.convert %arg2 : tensor<f64>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<i1>, tensor<f64>
    return %1 : tensor<f64>
  }
  func.func private @clip(%arg0: tensor<f64>, %arg1: tensor<f64>, %arg2: tensor<i64>) -> tensor<f64> {
    %0 = stablehlo.convert %arg1 : tensor<f64>
    %1 = stablehlo.maximum %0, %arg0 : tensor<f64>
    %2 = stablehlo.convert %arg2 : (tensor<i64>) -> tensor<f64>
    %3 = stablehlo.minimum %2, %1 : tensor<f64>
    return %3 : tensor<f64>
  }
}
